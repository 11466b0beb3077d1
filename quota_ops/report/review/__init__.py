"""The review of a branch: the comment of its pull request, and annotations of its lines."""
