"""Ways through AOTAutograd and Inductor, and what is seen on them."""
