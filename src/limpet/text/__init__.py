"""Pure work on texts: how long one is for a model, how to show it safely, how two differ, and what is nearly there."""
