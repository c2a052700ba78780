// The speaker's page: choose, start, read along, share.
import { Announcer } from "./announcer.js";
import { $, show, trouble } from "./dom.js";
import { NOTHING, saveSound, saveText } from "./files.js";
import { LagChart } from "./lag.js";
import { about, direction } from "./languages.js";
import { chosenLatency, offerLatencies } from "./latency.js";
import { makeMenu } from "./menu.js";
import { fillDevices, microphoneTrouble, onMicrophoneChange, refusal } from "./microphone.js";
import { Pane } from "./pane.js";
import { Pause } from "./pause.js";
import { leaveTalk, ourRoom, roomBefore, takeSpeakerLink } from "./room.js";
import { offerShare, shareRoom, tellAudience, watchAudience } from "./share.js";
import { offerSizes } from "./size.js";
import { UNREACHABLE } from "./socket.js";
import * as sources from "./sources.js";
import { tellSpeaker } from "./states.js";
import { Talk } from "./talk.js";
import { offerTexts, showText, showsSource } from "./texts.js";
import { Voice } from "./voice.js";
import { keepAwake } from "./wake.js";

const source = new Pane($("source"), $("source-latest"));
const target = new Pane($("target"), $("target-latest"));
const announcer = new Announcer($("announced"));
const lag = new LagChart($("lag"), $("lag-now"), $("lag-line"));
const voice = new Voice();
let offer = null; // what the server offers
let room = null; // of this tab, once it was needed
let sound = null; // while somebody speaks
let talk = null;
const pause = new Pause((on) => {
  sound?.pause(on);
  if (talk?.ready) fares("listening");
});
let attempt = null; // to begin, from the press of the button to the end of the talk

const tell = (state, more) => tellSpeaker($("state"), state, more);

// The events of a talk.
const TAKES = {
  ready: () => { fares("listening"); trouble(""); tellAudience(0); hearSound(); }, // unless more are told
  heard: () => {},
  said: (event) => {
    target.append(event.text, event.source_ms);
    announcer.say(event.text);
    if (event.lag_ms !== null) lag.add(event.lag_ms);
  },
  interim: (event) => target.perhaps(event.text),
  transcript: (event) => {
    source.append(event.text, event.source_ms);
    if (event.language) nameSource(event.language);
  },
  state: (event) => fares(event.state),
  audience: (event) => tellAudience(event.listeners),
  speech: (event) => voice.take(event),
  summary: (event) => tell("done", `: ${event.words} words`),
  error: (event) => refused(event),
  connection: ({ state }) => {
    tell(state);
    if (talk?.ready) return; // it is still told how it goes
    lag.age();
    target.perhaps(""); // nobody tells what became of it
  },
  end: (event) => finish(event.message),
};

// How it goes while somebody speaks; who has stopped waits for the rest, whatever happens meanwhile.
function fares(state) {
  tell(talk?.stopped ? "finishing" : pause.on ? "paused" : state);
}

async function begin(event) {
  event.preventDefault();
  if (attempt) return; // a second click, or Enter in a field
  const mine = attempt = {};
  trouble("");
  lock(true);
  try {
    await open(mine);
  } catch (error) {
    if (mine !== attempt) return;
    giveUp();
    return trouble(refusal(error));
  }
  if (mine !== attempt) return; // somebody has pressed Stop meanwhile
  clear();
  talk = new Talk(`/v1/rooms/${room.room}/speak`, wishes(), (one) => TAKES[one.type]?.(one));
  if (sound.live) hearSound();
  pause.offer(sound.live);
  keepAwake(true);
  listDevices(); // their names are told from now on
}

// All that a talk needs. The browser may ask the speaker first, who takes their time.
async function open(mine) {
  const why = await soundTrouble();
  if (why) throw new Error(why);
  const opened = await openSound();
  if (mine !== attempt) return opened.stop();
  sound = opened;
  if ($("aloud").checked) await voice.open();
  await enterRoom();
}

async function soundTrouble() {
  const kind = $("sound").value;
  if (kind === "file" && !$("file").files.length) return "Choose a file first.";
  return kind === "microphone" ? microphoneTrouble() : "";
}

function giveUp() {
  attempt = null;
  release();
  lock(false);
}

async function enterRoom() {
  room = await ourRoom($("token").value);
  shareRoom(room);
}

// Also before the talk, so that there is time to hand out the link.
async function share() {
  trouble("");
  try {
    if (!talk) await enterRoom();
  } catch (error) {
    return trouble(error.message);
  }
  $("share").showModal();
  $("share").scrollTop = 0; // on a small screen the button with the focus is far below the code
}

function hearSound() {
  sound?.begin((samples) => talk?.hear(samples), ended);
}

function openSound() {
  const kind = $("sound").value;
  if (kind === "file") return sources.recording($("file").files[0]);
  if (kind === "tab") return sources.tab();
  return sources.microphone($("device").value, $("headphones").checked || !$("aloud").checked);
}

function wishes() {
  const start = { type: "start", transcript: showsSource(), audio: { rate: sound.rate } };
  if ($("from").value) start.from = $("from").value;
  if ($("to").value) start.to = $("to").value;
  if (chosenLatency() !== null) start.latency_ms = chosenLatency();
  if ($("aloud").checked) start.speech = "mp3";
  start.access_token = room.speaker_token;
  return start;
}

function clear() {
  [source, target].forEach((pane) => pane.clear());
  nameSource();
  target.language($("to").value, direction($("to").value));
  announcer.language($("to").value, direction($("to").value));
  $("target-name").textContent = nameOf("to") || "Translation";
  lag.clear();
  voice.forget();
  show("lag", true);
}

// What is spoken, as far as somebody has said that, and what it is written down in: a server may
// translate by way of English.
function nameSource(written = "") {
  const spoken = $("from").value;
  source.language(written || spoken, direction(written || spoken));
  const known = [...(offer?.hears ?? []), ...(offer?.speaks ?? [])];
  const name = (code) => known.find((language) => language.code === code)?.name;
  const other = written !== spoken && name(written);
  const said = name(spoken) ? `Spoken: ${name(spoken)}` : "Spoken";
  $("source-name").textContent = other ? `${said}, in ${other}` : said;
}

function nameOf(id) {
  return $(id).value && $(id).selectedOptions[0]?.text;
}

// The speaker has stopped, or the sound has.
function ended(message) {
  release();
  if (message) trouble(message);
  show("end", false);
  if (talk) talk.stop();
  else giveUp();
}

function release() {
  sound?.stop();
  sound = null;
  pause.offer(false);
}

function finish(message) {
  talk = null;
  giveUp();
  keepAwake(false);
  lag.age();
  target.perhaps("");
  if (message) trouble(message);
  if ($("state").dataset.state !== "done") tell("idle");
}

// An error that does not end the talk.
function refused({ code, message }) {
  trouble(message);
  if (code !== "voice") return;
  $("aloud").checked = false;
  chooseVoice();
}

// What cannot change while somebody speaks.
function lock(talking) {
  for (const id of ["from", "to", "sound", "device", "file", "token"]) $(id).disabled = talking;
  show("begin", !talking);
  show("end", talking);
  document.body.classList.toggle("talking", talking);
}

// The browser takes its time to tell of the microphone: by then something else may be chosen, or told.
async function chooseSound() {
  const kind = $("sound").value;
  show("file-row", kind === "file");
  show("device-row", kind === "microphone");
  trouble("");
  if (kind !== "microphone") return;
  const why = await microphoneTrouble();
  if (why && $("sound").value === kind && !attempt) trouble(why);
}

async function chooseVoice() {
  const aloud = $("aloud").checked;
  const soft = $("sound").value === "microphone" && !$("headphones").checked;
  show("echo", aloud && soft);
  show("output-row", aloud && Voice.hasOutputs);
  voice.soften(soft);
  if (aloud) await voice.open();
  else voice.close();
  if (talk) talk.speak(aloud ? "mp3" : null);
}

async function listDevices() {
  await fillDevices($("device"), "audioinput");
  await fillDevices($("output"), "audiooutput");
}

async function save(name) {
  trouble("");
  try {
    if (name === "sound") return await saveSound(voice.phrases);
    room ??= await roomBefore();
    if (!room) throw new Error(NOTHING);
    await saveText(room.room, room.speaker_token, name);
  } catch (error) {
    trouble(error.message);
  }
}

// The room of this tab, from before it was loaded again; who listens there is shown at once. While a
// talk goes on, it tells.
async function comeBack() {
  room ??= await roomBefore().catch(() => null);
  watchAudience(() => (talk?.ready ? null : room));
}

async function meet() {
  offer = await about();
  for (const [id, languages, chosen] of [["from", offer.hears, offer.from], ["to", offer.speaks, offer.to]]) {
    $(id).append(...languages.map(({ code, name }) => new Option(name, code)));
    if (languages.some(({ code }) => code === chosen)) $(id).value = chosen;
  }
  show("token-row", offer.token);
  show("source-row", offer.transcript);
  offerLatencies(offer.latencies_ms, (ms) => talk?.change({ latency_ms: ms }));
  showText();
}

$("setup").addEventListener("submit", begin);
$("end").addEventListener("click", () => ended(""));
$("sound").addEventListener("change", () => { chooseSound(); chooseVoice(); });
for (const id of ["aloud", "headphones"]) $(id).addEventListener("change", chooseVoice);
$("output").addEventListener("change", () => voice.choose($("output").value));
makeMenu($("save"), save);
offerSizes("size");
offerShare(share);
offerTexts();
$("options").open = matchMedia("(min-width: 60rem)").matches;
chooseSound();
onMicrophoneChange(() => { if (!talk && $("sound").value === "microphone") chooseSound(); listDevices(); });
// Once all is said, nothing is lost by leaving.
const unsaid = () => talk && $("state").dataset.state !== "done";
addEventListener("beforeunload", (event) => { if (unsaid()) event.preventDefault(); });
// Who leaves all the same ends the talk: the rest of it is said, and listeners need not wait.
addEventListener("pagehide", () => {
  if (unsaid() && talk.session) leaveTalk(room, talk.session.session);
  talk?.stop();
});
listDevices();
takeSpeakerLink();
addEventListener("hashchange", () => location.reload()); // such a link, in the place of this page
comeBack();
meet().catch(() => trouble(`${UNREACHABLE} Reload the page once it is.`));
