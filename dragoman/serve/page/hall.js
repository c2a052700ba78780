// The screen of a hall: huge text, always awake; before the talk the way to follow on a phone.
import { $, ON_SCREEN, show, trouble } from "./dom.js";
import { direction } from "./languages.js";
import { Pane } from "./pane.js";
import { qrPicture } from "./qr.js";
import { Follower, here, link } from "./room.js";
import { offerSizes } from "./size.js";
import { tellListener } from "./states.js";
import { keepAwake } from "./wake.js";

const target = new Pane($("target"), null, ON_SCREEN);
const place = here();
let asked = false; // the code is wanted although somebody speaks
let state = "waiting";

function arrange() {
  show("welcome", state !== "refused" && (asked || state === "waiting"));
}

const TAKES = {
  anew: () => target.clear(),
  connection: (event) => {
    tellListener($("state"), event.state);
    trouble(event.message ?? "");
    if (event.state === "refused") state = "refused"; // a link that opens nothing is not shown around
    arrange();
    target.perhaps(""); // nobody tells what became of it
  },
  room: (event) => {
    state = event.state;
    tellListener($("state"), state);
    trouble("");
    arrange();
  },
  talk: ({ to }) => { target.clear(); target.language(to, direction(to)); },
  said: ({ text, source_ms }) => target.append(text, source_ms),
  interim: ({ text }) => target.perhaps(text),
  summary: () => target.perhaps(""),
};

new Follower(place, (event) => TAKES[event.type]?.(event));
$("code").append(qrPicture(link("room", place.room, place.token), "QR code of the link for listeners"));
$("full").addEventListener("click", () => {
  if (document.fullscreenElement) document.exitFullscreen();
  else document.documentElement.requestFullscreen();
});
$("join").addEventListener("click", () => { asked = !asked; arrange(); });

// The buttons are there when somebody moves, and only then.
let timer = 0;
function wakeButtons() {
  document.body.classList.add("busy");
  clearTimeout(timer);
  timer = setTimeout(() => document.body.classList.remove("busy"), 3000);
}
for (const kind of ["pointermove", "keydown", "focusin"]) document.addEventListener(kind, wakeButtons);

offerSizes("hall-size");
keepAwake(true);
arrange();
