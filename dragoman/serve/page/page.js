// The page of `dragoman serve`: sound in, words out. docs/protocol.md describes the messages.
const $ = (id) => document.getElementById(id);
const RETRIES = 8;
let talk = null;

class Talk {
  socket = null;
  session = null; // what `ready` told
  ready = false; // on this connection: before that, sound would come out of turn
  first = 0; // number of the next sample
  word = 0;
  transcript = 0;
  heard = 0;
  waiting = []; // frames that the server has no receipt for: {first, samples}
  tries = 0;
  over = false;
  stopped = false;

  constructor(start) {
    this.start = start;
    this.connect();
  }

  connect() {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}/v1/interpret`);
    this.socket = socket;
    socket.onopen = () => socket.send(JSON.stringify(this.session ? this.resume() : this.start));
    socket.onmessage = (message) => this.take(JSON.parse(message.data));
    socket.onclose = (event) => this.closed(event.code);
  }

  resume() {
    return {
      type: "resume",
      session: this.session.session,
      resume_token: this.session.resume_token,
      word: this.word,
      transcript: this.transcript,
      sample: this.heard,
      ...(this.start.access_token && { access_token: this.start.access_token }),
    };
  }

  hear(samples) {
    if (this.stopped) return;
    const frame = { first: this.first, samples };
    this.first += samples.length;
    this.waiting.push(frame);
    if (this.ready) this.send(frame);
  }

  send({ first, samples }) {
    const bytes = new DataView(new ArrayBuffer(8 + 2 * samples.length));
    bytes.setBigUint64(0, BigInt(first), true);
    samples.forEach((sample, i) => {
      const scaled = Math.round(Math.max(-1, Math.min(1, sample)) * 32767);
      bytes.setInt16(8 + 2 * i, scaled, true);
    });
    this.socket.send(bytes.buffer);
  }

  stop() {
    this.stopped = true;
    if (this.ready) this.sendStop();
  }

  sendStop() {
    this.socket.send(JSON.stringify({ type: "stop" }));
    tell("Saying the rest …");
  }

  take(event) {
    if (event.type === "ready") {
      this.session = event;
      this.ready = true;
      this.tries = 0;
      trouble("");
      this.waiting.forEach((frame) => this.send(frame)); // what is there already is not heard twice
      tell("Listening.");
      if (this.stopped) this.sendStop();
    } else if (event.type === "heard") {
      this.heard = event.sample;
      this.waiting = this.waiting.filter((f) => f.first + f.samples.length > event.sample);
    } else if (event.type === "said") {
      this.word = event.word;
      show($("said"), event.text, $("target"));
      if (event.lag_ms !== null) $("lag").textContent = `${(event.lag_ms / 1000).toFixed(1)} s behind`;
    } else if (event.type === "interim") {
      $("interim").textContent = event.text;
    } else if (event.type === "transcript") {
      this.transcript = event.number;
      show($("source"), event.text, $("source"));
    } else if (event.type === "state") {
      tell({
        listening: "Listening.",
        degraded: "Listening; the server is behind.",
        draining: "Listening; the server is about to end, this talk may finish.",
      }[event.state]);
    } else if (event.type === "summary") {
      this.over = true;
      tell(`Done: ${event.words} words.`);
    } else if (event.type === "error") {
      // Whoever is idle, or whose frame was lost, may come back; the others may not.
      this.over = !["idle", "sound", "too_long"].includes(event.code);
      trouble(event.message);
    }
  }

  closed(code) {
    this.ready = false;
    if (this.over || !this.session || this.tries >= RETRIES) {
      if (!this.over) trouble(`The server cannot be reached (${code}).`);
      finish();
      return;
    }
    tell("Reconnecting …");
    setTimeout(() => this.connect(), Math.min(5000, 250 * 2 ** this.tries++));
  }
}

function show(where, text, scrolled) {
  // Who has scrolled up to read is left there.
  const below = scrolled.scrollHeight - scrolled.scrollTop - scrolled.clientHeight < 40;
  where.append(text);
  if (below) scrolled.scrollTop = scrolled.scrollHeight;
}

function tell(text) {
  $("state").textContent = text;
}

function trouble(text) {
  $("trouble").textContent = text;
  $("trouble").hidden = !text;
}

// Why there is no microphone, and what to do; "" if there is one to ask for.
function microphoneTrouble() {
  if (!window.isSecureContext) {
    return "This page may not use the microphone, for it came without encryption. Open it as "
      + "https:// (see --tls-cert), or on the server's own machine as http://localhost.";
  }
  return navigator.mediaDevices?.getUserMedia ? "" : "This browser offers pages no microphone.";
}

const REFUSALS = {
  NotAllowedError: "The microphone is not allowed. Allow it for this page in the browser's "
    + "address bar, then start again.",
  NotFoundError: "There is no microphone. Plug one in, then start again.",
  NotReadableError: "Another program holds the microphone. Close it, then start again.",
};

let release = () => {}; // lets the microphone or the file go; once

function released() {
  release();
  release = () => {};
}

async function listen() {
  const stream = await navigator.mediaDevices.getUserMedia({ audio: { channelCount: 1 } });
  const context = new AudioContext();
  await context.audioWorklet.addModule("/page/worklet.js");
  const tap = new AudioWorkletNode(context, "tap", { numberOfOutputs: 0 });
  context.createMediaStreamSource(stream).connect(tap);
  release = () => {
    stream.getTracks().forEach((track) => track.stop());
    context.close();
  };
  return { rate: context.sampleRate, begin: () => { tap.port.onmessage = (e) => talk?.hear(e.data); } };
}

async function readFile(file) {
  const rate = 16000;
  const sound = await new OfflineAudioContext(1, 1, rate).decodeAudioData(await file.arrayBuffer());
  const channels = [...Array(sound.numberOfChannels).keys()].map((i) => sound.getChannelData(i));
  const mono = channels[0].map((_, at) => channels.reduce((sum, c) => sum + c[at], 0) / channels.length);
  let at = 0;
  let timer = 0;
  release = () => clearInterval(timer);
  const began = () => {
    const zero = performance.now();
    timer = setInterval(() => { // as fast as somebody speaks
      const due = Math.min(mono.length, Math.round((rate * (performance.now() - zero)) / 1000));
      for (; at < due; at += 16000) talk?.hear(mono.slice(at, Math.min(due, at + 16000)));
      at = due;
      if (at === mono.length) stop();
    }, 100);
  };
  return { rate, begin: began };
}

async function begin(event) {
  event.preventDefault();
  trouble("");
  const fromFile = $("sound").value === "file";
  if (fromFile && !$("file").files.length) return trouble("Choose a file first.");
  if (!fromFile && microphoneTrouble()) return trouble(microphoneTrouble());
  $("begin").disabled = true;
  let sound;
  try {
    sound = fromFile ? await readFile($("file").files[0]) : await listen();
  } catch (error) {
    $("begin").disabled = false;
    return trouble(fromFile ? "This browser cannot read that file." : REFUSALS[error.name] ?? error.message);
  }
  ["said", "interim", "source", "lag"].forEach((id) => { $(id).textContent = ""; });
  const start = { type: "start", transcript: showsSource(), audio: { rate: sound.rate } };
  for (const id of ["from", "to"]) if ($(id).value) start[id] = $(id).value;
  if ($("token").value) start.access_token = $("token").value;
  tell("Connecting …");
  talk = new Talk(start);
  sound.begin();
  $("end").disabled = false;
}

function stop() {
  released();
  $("end").disabled = true;
  talk?.stop();
}

function finish() {
  released();
  talk = null;
  $("begin").disabled = false;
  $("end").disabled = true;
  if (!$("state").textContent.startsWith("Done")) tell("Not listening.");
}

// To write down what is spoken costs the server work, so it is asked for only where it is shown.
function showsSource() {
  return $("show-source").checked && !$("source-row").hidden;
}

function chooseSound() {
  const file = $("sound").value === "file";
  $("file-row").hidden = !file;
  trouble(file ? "" : microphoneTrouble());
}

async function offer() {
  const about = await (await fetch("/v1/languages")).json();
  for (const [id, languages] of [["from", about.hears], ["to", about.speaks]]) {
    $(id).append(...languages.map(({ code, name }) => new Option(name, code)));
  }
  $("token-row").hidden = !about.token;
  $("source-row").hidden = !about.transcript;
  $("source-side").hidden = !showsSource();
}

$("talk").addEventListener("submit", begin);
$("end").addEventListener("click", stop);
$("sound").addEventListener("change", chooseSound);
$("show-interim").addEventListener("change", () => { $("interim").hidden = !$("show-interim").checked; });
$("show-source").addEventListener("change", () => { $("source-side").hidden = !showsSource(); });
chooseSound();
offer().catch(() => trouble("The server cannot be reached."));
