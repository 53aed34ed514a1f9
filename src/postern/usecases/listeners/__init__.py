"""Programs that listen to calls on people's own machines: who is there, what is handed to them, what they answer."""
