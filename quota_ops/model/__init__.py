"""What a quota is: plain frozen values, the standard library and msgspec only."""
