// One talk: sound goes in, events come out, and lost connections are come back from.
// docs/protocol.md describes the messages. Nothing here knows the document.
import { address, listen, pause } from "./socket.js";

const PATIENCE = 10 * 60 * 1000; // how long to try again
const MOST_KEPT = 2000; // events that another process would rebuild the talk from
const AGAIN = ["idle", "sound", "too_big", "overloaded"]; // after these the talk may be resumed
const LATER = ["full", "draining", "too_fast"]; // and after these another try may find room
const ASIDE = ["policy", "unfit", "too_long", "voice"]; // and these do not end it

export class Talk {
  socket = null;
  session = null; // what `ready` told
  ready = false; // on this connection: before that, sound would come out of turn
  first = 0; // number of the next sample
  heard = { sample: 0 };
  said = [];
  transcripts = [];
  frames = []; // of sound that the server may want again: {first, count, bytes}
  tries = 0;
  lostSince = null;
  over = false;
  stopped = false;

  // `on(event)` is told every event of the server, and of the connection: {type: "connection",
  // state: "connecting" | "queued" | "reconnecting" | "finishing"}, {type: "end", message}.
  constructor(path, start, on) {
    this.path = path;
    this.start = start;
    this.on = on;
    this.on({ type: "connection", state: "connecting" });
    this.connect();
  }

  connect() {
    const socket = new WebSocket(address(this.path));
    this.socket = socket;
    socket.onopen = () => this.send(this.session ? this.resume() : this.start);
    listen(socket, (event) => this.take(event));
    socket.onclose = (event) => this.closed(event.code);
  }

  hear(samples) {
    if (this.stopped || this.over) return;
    const frame = { first: this.first, count: samples.length, bytes: encode(this.first, samples) };
    this.first += samples.length;
    this.frames.push(frame);
    if (this.ready) this.socket.send(frame.bytes);
  }

  // Another lag or policy, from now on.
  change(wish) {
    const { policy, latency_ms, ...rest } = this.start;
    this.start = { ...rest, ...wish };
    if (this.ready) this.send({ type: "change", ...wish });
  }

  speak(speech) {
    this.start = { ...this.start, speech };
    if (this.ready) this.send({ type: "speak", speech });
  }

  stop() {
    this.stopped = true;
    if (this.ready) this.finish();
    else if (!this.session) this.end("");
  }

  finish() {
    this.send({ type: "stop" });
    this.on({ type: "connection", state: "finishing" });
  }

  send(message) {
    this.socket.send(JSON.stringify(message));
  }

  resume() {
    const { access_token } = this.start;
    return {
      type: "resume",
      session: this.session.session,
      resume_token: this.session.resume_token,
      word: this.said.at(-1)?.word ?? 0,
      transcript: this.transcripts.at(-1)?.number ?? 0,
      sample: this.heard.sample,
      ...(access_token && { access_token }),
      ...(this.heard.keep !== undefined && { elsewhere: this.elsewhere() }),
    };
  }

  // All that a process needs that has never heard of this talk.
  elsewhere() {
    const { access_token, ...start } = this.start;
    const { keep, word, transcript } = this.heard;
    return {
      start, keep, word, transcript,
      said: this.said.slice(-MOST_KEPT),
      transcripts: this.transcripts.slice(-MOST_KEPT),
    };
  }

  take(event) {
    if (event.type === "ready") this.begin(event);
    else if (event.type === "heard") this.forget(event);
    else if (event.type === "said") keep(this.said, event);
    else if (event.type === "transcript") keep(this.transcripts, event);
    else if (event.type === "summary") this.over = true;
    else if (event.type === "error" && !ASIDE.includes(event.code)) this.fault = event;
    if (event.type !== "error" || ASIDE.includes(event.code)) this.on(event);
  }

  begin(event) {
    const again = this.session !== null;
    this.session = event;
    this.ready = true;
    this.tries = 0;
    this.lostSince = null;
    this.fault = null;
    for (const frame of this.frames) {
      if (frame.first + frame.count > event.sample) this.socket.send(frame.bytes);
    }
    if (again && this.start.speech) this.send({ type: "speak", speech: this.start.speech });
    if (this.stopped) this.finish();
  }

  forget(event) {
    this.heard = event;
    const from = event.keep ?? event.sample;
    this.frames = this.frames.filter((frame) => frame.first + frame.count > from);
  }

  closed(code) {
    this.ready = false;
    if (this.over) return this.end("");
    const fault = this.fault;
    this.fault = null;
    const queued = !this.session && LATER.includes(fault?.code);
    if (fault && !queued && !AGAIN.includes(fault.code) && !LATER.includes(fault.code)) {
      return this.end(fault.message);
    }
    this.lostSince ??= Date.now();
    const patient = queued || (this.session && Date.now() - this.lostSince < PATIENCE);
    if (!patient) return this.end(`The server cannot be reached (${code}).`);
    if (queued) { // nobody has begun to listen
      this.frames = [];
      this.first = 0;
    }
    this.on({ type: "connection", state: queued ? "queued" : "reconnecting" });
    this.timer = setTimeout(() => this.connect(), pause(this.tries++));
  }

  end(message) {
    this.over = true;
    clearTimeout(this.timer);
    this.socket.onclose = null;
    this.socket.close();
    this.on({ type: "end", message });
  }
}

// A frame of sound: the number of its first sample, then PCM16.
export function encode(first, samples) {
  const bytes = new DataView(new ArrayBuffer(8 + 2 * samples.length));
  bytes.setBigUint64(0, BigInt(first), true);
  samples.forEach((sample, i) => {
    const scaled = Math.round(Math.max(-1, Math.min(1, sample)) * 32767);
    bytes.setInt16(8 + 2 * i, scaled, true);
  });
  return bytes.buffer;
}

function keep(events, event) {
  events.push(event);
  if (events.length > 2 * MOST_KEPT) events.splice(0, MOST_KEPT);
}
