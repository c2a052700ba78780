// Hands the microphone's first channel to the page, a tenth of a second at a time.
class Tap extends AudioWorkletProcessor {
  held = new Float32Array(Math.round(sampleRate / 10));
  count = 0;

  process([input]) {
    for (const sample of input[0] ?? []) {
      this.held[this.count++] = sample;
      if (this.count === this.held.length) {
        this.port.postMessage(this.held.slice());
        this.count = 0;
      }
    }
    return true;
  }
}

registerProcessor("tap", Tap);
