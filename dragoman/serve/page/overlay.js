// Captions on a transparent page, for OBS. The address says how they look:
// ?lines=2&size=48&color=ffffff&box=00000080&align=start&interim=no&clear=8
import { $, ON_SCREEN, trouble } from "./dom.js";
import { direction } from "./languages.js";
import { Pane } from "./pane.js";
import { Follower, here } from "./room.js";

const asked = new URLSearchParams(location.search);
const KNOWN = ["lines", "size", "color", "box", "align", "interim", "clear"];
// What is wrong with the address; told until there are words, for by then the page may be on air.
let odd = [...asked.keys()].filter((name) => !KNOWN.includes(name)).map((name) => `there is no ${name}`);

function number(name, otherwise, least, most) {
  const value = Number(asked.get(name) || otherwise);
  if (value >= least && value <= most) return value;
  odd.push(`${name} is a number from ${least} to ${most}`);
  return Number.isFinite(value) ? Math.max(least, Math.min(most, value)) : otherwise;
}

function oneOf(name, values) {
  const value = asked.get(name) || values[0];
  if (values.includes(value)) return value;
  odd.push(`${name} is ${values.join(" or ")}`);
  return values[0];
}

// A name of CSS, or digits in hexadecimal with or without #.
function colour(name, otherwise) {
  const value = asked.get(name) || otherwise;
  const digits = /^[0-9a-f]{3,8}$/i.test(value) ? `#${value}` : value;
  if (CSS.supports("color", digits)) return digits;
  odd.push(`${name} is a colour, such as ffffff`);
  return otherwise;
}

const style = document.documentElement.style;
style.setProperty("--lines", number("lines", 2, 1, 12));
style.setProperty("--size", `${number("size", 48, 8, 400)}px`);
style.setProperty("--color", colour("color", "#ffffff"));
style.setProperty("--box", colour("box", "transparent"));
// Lines that grow from the middle move with every word, so they begin at the side.
style.setProperty("--align", oneOf("align", ["start", "center", "end"]));

const target = new Pane($("target"), null, ON_SCREEN);
document.body.classList.toggle("settled", oneOf("interim", ["yes", "no"]) === "no");

const seconds = number("clear", 8, 0, 3600); // of silence after which the screen is empty; 0: never
let timer = 0;

function live() {
  if (odd.length) trouble("");
  odd = [];
  clearTimeout(timer);
  if (seconds) timer = setTimeout(empty, 1000 * seconds);
}

const empty = () => target.clear();

const TAKES = {
  anew: empty,
  connection: ({ message }) => {
    trouble(message || (odd.length ? `In the address of this page, ${odd.join("; ")}.` : ""));
    target.perhaps(""); // nobody tells what became of it
  },
  talk: ({ to }) => { empty(); target.language(to, direction(to)); },
  said: ({ text, source_ms }) => { target.append(text, source_ms); live(); },
  interim: ({ text }) => { target.perhaps(text); live(); },
};

new Follower(here(), (event) => TAKES[event.type]?.(event));
