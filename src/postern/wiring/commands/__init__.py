"""Commands on the machine of the gateway: whom they ask, and what they do by themselves."""
