// One talk: sound goes in, events come out, and lost connections are come back from.
// docs/protocol.md describes the messages. Nothing here knows the document.
import { address, leave, listen, pause } from "./socket.js";

const PATIENCE = 10 * 60 * 1000; // how long to try again
const LAST_PATIENCE = 30 * 1000; // once the speaker has stopped, and waits for nothing but the rest
const MOST_KEPT = 100000; // characters of events that another process would rebuild the talk from
const SILENCE = 15 * 1000; // without a word of the server's while it is sent sound: the line is dead
const LATER = ["idle", "overloaded", "full", "draining", "too_fast"]; // another try may find room
const ASIDE = ["policy", "unfit", "too_long", "voice"]; // do not end a talk that has begun

export class Talk {
  socket = null;
  session = null; // what `ready` told
  ready = false; // on this connection: before that, sound would come out of turn
  first = 0; // number of the next sample
  heard = { sample: 0, keep: 0, word: 0, transcript: 0 };
  said = [];
  transcripts = [];
  frames = []; // of sound that the server may want again: {first, count, bytes}
  wish = null; // the last change of the policy
  asked = null; // the speech that this connection was begun with
  told = 0; // when the server last said something, or was asked to
  trying = false; // a socket is there, or on its way
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
    this.watching = setInterval(() => this.watch(), 1000);
    this.connect();
  }

  connect() {
    const socket = new WebSocket(address(this.path));
    this.socket = socket;
    this.trying = true;
    this.told = performance.now();
    socket.onopen = () => {
      this.asked = this.session ? null : this.start.speech;
      this.send(this.session ? this.resume() : this.start);
    };
    listen(socket, (event) => this.take(event));
    socket.onclose = (event) => this.closed(event.code);
  }

  // A line may be dead without anybody being told: of sound that arrives the server tells.
  watch() {
    if (!this.trying || performance.now() - this.told < SILENCE) return;
    leave(this.socket);
    this.closed(1006);
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
    this.wish = { type: "change", ...wish };
    if (this.ready) this.send(this.wish);
  }

  speak(speech) {
    this.start = { ...this.start, speech };
    if (this.ready) this.send({ type: "speak", speech });
  }

  stop() {
    this.stopped = true;
    if (!this.session) {
      if (this.socket.readyState === WebSocket.OPEN) this.send({ type: "stop" }); // it may be about to begin
      return this.end("");
    }
    this.on({ type: "connection", state: "finishing" });
    if (this.ready) this.send({ type: "stop" });
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
      elsewhere: this.elsewhere(),
    };
  }

  // All that a process needs that has never heard of this talk.
  elsewhere() {
    const { access_token, ...start } = this.start;
    const { keep, word, transcript } = this.heard;
    return {
      start, keep, word, transcript,
      said: latest(this.said),
      transcripts: latest(this.transcripts),
    };
  }

  take(event) {
    this.told = performance.now();
    if (event.type === "error") return this.refused(event);
    if (event.type === "ready") this.begin(event);
    else if (event.type === "heard") this.forget(event);
    else if (event.type === "summary") this.over = true;
    else if (event.type === "said" && !keep(this.said, event, "word")) return;
    else if (event.type === "transcript" && !keep(this.transcripts, event, "number")) return;
    this.on(event);
  }

  refused(event) {
    if (["policy", "unfit"].includes(event.code)) this.wish = null; // it is not asked for again
    if (this.ready && ASIDE.includes(event.code)) this.on(event);
    else this.fault = event;
  }

  begin(event) {
    this.session = event;
    this.ready = true;
    this.tries = 0;
    this.lostSince = null;
    this.fault = null;
    if (this.wish) this.send(this.wish);
    for (const frame of this.frames) {
      if (frame.first + frame.count > event.sample) this.socket.send(frame.bytes);
    }
    const speech = this.start.speech ?? null;
    if (speech !== (this.asked ?? null)) this.send({ type: "speak", speech });
    if (this.stopped) this.send({ type: "stop" });
  }

  forget(event) {
    this.heard = event;
    this.frames = this.frames.filter((frame) => frame.first + frame.count > event.keep);
  }

  closed(code) {
    this.ready = this.trying = false;
    if (this.over) return this.end("");
    const fault = this.fault;
    this.fault = null;
    if (fault && !LATER.includes(fault.code)) return this.end(fault.message);
    const queued = !this.session && fault;
    const now = performance.now(); // whose clock nobody sets
    this.lostSince ??= now;
    const patience = this.stopped ? LAST_PATIENCE : PATIENCE;
    const patient = queued || (this.session && now - this.lostSince < patience);
    if (!patient) return this.end(fault?.message ?? `The server cannot be reached (${code}).`);
    if (queued) { // nobody has begun to listen
      this.frames = [];
      this.first = 0;
    }
    const lost = this.stopped ? "finishing" : "reconnecting";
    this.on({ type: "connection", state: queued ? "queued" : lost });
    this.timer = setTimeout(() => this.connect(), pause(this.tries++));
  }

  end(message) {
    this.over = true;
    clearTimeout(this.timer);
    clearInterval(this.watching);
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

// Whether an event is new; one that is known already is not told twice.
function keep(events, event, number) {
  if (event[number] <= (events.at(-1)?.[number] ?? 0)) return false;
  return events.push(event);
}

// The last events, as many as fit into a message.
function latest(events) {
  let room = MOST_KEPT;
  const first = events.findLastIndex((event) => (room -= JSON.stringify(event).length) < 0);
  return events.slice(first + 1);
}
