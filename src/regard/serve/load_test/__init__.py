"""`regard bench serve`: requests at random times, whether or not earlier ones are answered, and what they cost."""
