"""The waist: every operation, one file a noun. Doors come in here, stores are called from here, nowhere else."""
