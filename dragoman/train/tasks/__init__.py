"""What a net is trained to do: one small file per task."""
