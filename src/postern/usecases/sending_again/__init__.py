"""What a sender failed to deliver, asked for again at the sender."""
