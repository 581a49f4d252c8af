"""One constraint a file: a RULE, and a public class that users combine and subclass."""
