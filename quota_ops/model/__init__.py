"""What a quota is: plain frozen values, the standard library only."""
