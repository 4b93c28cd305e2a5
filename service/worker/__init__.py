"""A worker of a farm: takes orders from the store, compiles them in its sandbox, signs and stores what it makes."""
