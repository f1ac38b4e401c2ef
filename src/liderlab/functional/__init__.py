"""Pure functions of tensors: the mathematics without the bookkeeping."""
