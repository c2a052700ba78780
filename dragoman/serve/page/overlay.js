// Captions on a transparent page, for OBS. The address says how they look:
// ?lines=2&size=48&color=ffffff&box=00000080&align=start&interim=no&clear=8
import { $, ON_SCREEN, trouble } from "./dom.js";
import { direction } from "./languages.js";
import { Pane } from "./pane.js";
import { Follower, here } from "./room.js";

const asked = new URLSearchParams(location.search);

function number(name, otherwise, least, most) {
  const value = Number(asked.get(name) ?? otherwise);
  return Number.isFinite(value) ? Math.max(least, Math.min(most, value)) : otherwise;
}

// A name of CSS, or digits in hexadecimal with or without #.
function colour(name, otherwise) {
  const value = asked.get(name) ?? otherwise;
  const digits = /^[0-9a-f]{3,8}$/i.test(value) ? `#${value}` : value;
  return CSS.supports("color", digits) ? digits : otherwise;
}

const style = document.documentElement.style;
style.setProperty("--lines", number("lines", 2, 1, 12));
style.setProperty("--size", `${number("size", 48, 8, 400)}px`);
style.setProperty("--color", colour("color", "#ffffff"));
style.setProperty("--box", colour("box", "transparent"));
// Lines that grow from the middle move with every word, so they begin at the side.
const sides = { start: "start", end: "end", center: "center" };
style.setProperty("--align", sides[asked.get("align")] ?? "start");

const target = new Pane($("target"), null, ON_SCREEN);
document.body.classList.toggle("settled", asked.get("interim") === "no");

const seconds = number("clear", 8, 0, 3600); // of silence after which the screen is empty; 0: never
let timer = 0;

function live() {
  clearTimeout(timer);
  if (seconds) timer = setTimeout(empty, 1000 * seconds);
}

const empty = () => target.clear();

const TAKES = {
  anew: empty,
  connection: ({ message }) => {
    trouble(message ?? "");
    target.perhaps(""); // nobody tells what became of it
  },
  talk: ({ to }) => { empty(); target.language(to, direction(to)); },
  said: ({ text, source_ms }) => { target.append(text, source_ms); live(); },
  interim: ({ text }) => { target.perhaps(text); live(); },
};

new Follower(here(), (event) => TAKES[event.type]?.(event));
