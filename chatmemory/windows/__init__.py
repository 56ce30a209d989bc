"""What the model sees next: windows, the policies that bound them, and what each change does."""
