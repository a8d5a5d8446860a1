"""External stores: copies that follow the change log of the primary store, and propose memories in a recall."""
