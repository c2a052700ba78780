// The listener's page: read along, or hear, with one's own text size.
import { Announcer } from "./announcer.js";
import { $, show, trouble } from "./dom.js";
import { saveSound, saveText } from "./files.js";
import { direction } from "./languages.js";
import { makeMenu } from "./menu.js";
import { fillDevices } from "./microphone.js";
import { Pane } from "./pane.js";
import { Follower, here } from "./room.js";
import { offerSizes } from "./size.js";
import { tellListener } from "./states.js";
import { Voice } from "./voice.js";
import { keepAwake } from "./wake.js";

const source = new Pane($("source"), $("source-latest"));
const target = new Pane($("target"), $("target-latest"));
const announcer = new Announcer($("announced"));
const voice = new Voice();
const place = here();
let late = true; // what was said before one came in is not read out
let hushed = 0;

const TAKES = {
  anew: () => { source.clear(); target.clear(); hush(); },
  connection: ({ state, message }) => {
    tellListener($("state"), state);
    trouble(message ?? "");
    target.perhaps(""); // nobody tells what became of it
  },
  room: ({ state }) => {
    tellListener($("state"), state);
    trouble("");
    keepAwake(!["waiting", "over"].includes(state));
    if (late) hush();
  },
  talk: ({ from, to }) => {
    [source, target].forEach((pane) => pane.divide());
    source.language(from, direction(from));
    target.language(to, direction(to));
    announcer.language(to, direction(to));
    voice.forget();
  },
  gap: ({ of }) => (of === "said" ? target : source).append("…"),
  said: ({ text, source_ms }) => {
    target.append(text, source_ms);
    if (!late) announcer.say(text);
  },
  interim: ({ text }) => target.perhaps(text),
  transcript: ({ text, source_ms, language }) => {
    if (language) source.language(language, direction(language));
    source.append(text, source_ms);
    show("spoken", true);
  },
  summary: () => target.perhaps(""),
  speech: (event) => voice.take(event),
  error: ({ message }) => { trouble(message); listenAloud(false); }, // of the voice alone
};

// For a moment all that is told was said before.
function hush() {
  late = true;
  clearTimeout(hushed);
  hushed = setTimeout(() => { late = false; }, 1000);
}

const follower = new Follower(place, (event) => TAKES[event.type]?.(event));

function press(id, pressed) {
  $(id).setAttribute("aria-pressed", pressed);
}

// A button that is on or off; returns what it is now.
function toggle(id) {
  const pressed = $(id).getAttribute("aria-pressed") !== "true";
  press(id, pressed);
  return pressed;
}

$("captions").addEventListener("click", () => {
  const on = toggle("captions");
  show("target-side", on);
  show("only-sound", !on);
});
$("spoken").addEventListener("click", () => {
  const on = toggle("spoken");
  for (const id of ["source-side", "target-name"]) show(id, on);
});
$("aloud").addEventListener("click", () => listenAloud($("aloud").ariaPressed !== "true"));
$("output").addEventListener("change", () => voice.choose($("output").value));

async function listenAloud(on) {
  press("aloud", on);
  if (on) await voice.open();
  else voice.close();
  follower.speak(on ? "mp3" : null);
  show("output-row", on && Voice.hasOutputs && (await fillDevices($("output"), "audiooutput")) > 1);
}

makeMenu($("save"), async (name) => {
  trouble("");
  try {
    if (name === "sound") await saveSound(voice.phrases);
    else await saveText(place.room, place.token, name);
  } catch (error) {
    trouble(error.message);
  }
});
offerSizes("listener-size");
