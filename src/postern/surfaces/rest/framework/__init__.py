"""The parts that turn a use case into an operation of the API."""
