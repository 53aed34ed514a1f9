"""What makes a use case an operation of the API: reading, answering, refusing, describing."""
