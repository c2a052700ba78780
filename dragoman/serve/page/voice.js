// The interpreter's voice: phrases one after the other, through the output that was chosen.
import { keepRunning } from "./running.js";

const ALOUD = 1;
const SOFT = 0.4; // through loudspeakers beside an open microphone
const LATEST = 15; // seconds of speech that may wait; beyond, it is dropped to stay live

export class Voice {
  context = null;
  free = 0; // when the phrase before ends
  phrases = []; // {at_ms, sound}: all that was received, for the file; a browser keeps blobs on its disk
  before = Promise.resolve(); // the phrase before is read, and its turn is known
  output = "";

  // Sound may begin only when somebody has clicked: call this from there.
  async open() {
    const context = this.context ?? this.make();
    await this.choose(this.output);
    await context.resume().catch(() => {}); // it was closed meanwhile
  }

  make() {
    this.context = new AudioContext();
    this.gain = this.context.createGain();
    this.gain.connect(this.context.destination);
    this.rest = keepRunning(this.context);
    return this.context;
  }

  close() {
    this.rest?.();
    this.context?.close();
    this.context = null;
    this.free = 0;
  }

  static get hasOutputs() {
    return "setSinkId" in AudioContext.prototype;
  }

  // An output may be gone, as headphones are that were switched off: then it is the usual one.
  async choose(deviceId) {
    this.output = deviceId;
    if (!this.context || !Voice.hasOutputs) return;
    await this.context.setSinkId(deviceId).catch(() => { this.output = ""; });
  }

  // Soft where a microphone would hear it again.
  soften(soft) {
    this.soft = soft;
    if (this.gain) this.gain.gain.value = soft ? SOFT : ALOUD;
  }

  // Browsers read several at once, and may be done with a short one first.
  take({ at_ms, sound }) {
    this.phrases.push({ at_ms, sound: new Blob([sound]) });
    const context = this.context;
    if (!context) return;
    const play = () => this.play(context, sound);
    this.before = this.before.then(play).catch(() => {}); // one that cannot be read is left out
  }

  async play(context, sound) {
    if (context !== this.context) return;
    const buffer = await context.decodeAudioData(sound);
    if (context !== this.context || context.state !== "running") return; // else it would be heard too late
    this.soften(this.soft);
    const start = Math.max(context.currentTime, this.free);
    if (start - context.currentTime > LATEST) return;
    const source = context.createBufferSource();
    source.buffer = buffer;
    source.connect(this.gain);
    source.start(start);
    this.free = start + buffer.duration;
  }

  forget() {
    this.phrases = [];
  }
}
