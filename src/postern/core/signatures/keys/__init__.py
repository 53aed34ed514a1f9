"""The keys with which signatures are checked, a file for each thing that a sender can prove."""
