"""FX graphs made smaller while what is wrong with them stays."""
