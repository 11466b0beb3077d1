"""The records that a cluster's runs share: managed rows, claims, holds, and decisions."""
