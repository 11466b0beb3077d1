"""What earlier runs found and did."""
