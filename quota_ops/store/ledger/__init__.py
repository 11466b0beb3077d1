"""What a cluster's runs share: the managed rows, claims, holds, and decisions about plans."""
