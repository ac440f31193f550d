"""Code that agents write, run in a process with limits on time, memory and output."""
