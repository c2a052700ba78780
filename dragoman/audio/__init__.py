"""Sound in and out: files, microphone, resampling, chunks, voice activity, playback."""
