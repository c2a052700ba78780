// The pages of the report: an overview, and one page per sentence of a system.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const overview = document.getElementById("overview");
const page = document.getElementById("page");

const make = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
};
const SVG = "http://www.w3.org/2000/svg";
let redraw = () => {};
const seconds = (ms) => (Math.round(ms / 100) / 10).toFixed(1) + " s"; // never -0.0

// Sort a table by a click on its head; undefined values go last.
for (const head of document.querySelectorAll("th")) {
  head.addEventListener("click", () => {
    const body = head.closest("table").tBodies[0];
    const column = [...head.parentNode.children].indexOf(head);
    const down = head.dataset.down !== "yes";
    head.dataset.down = down ? "yes" : "no";
    const key = (row) => {
      const cell = row.cells[column];
      const value = cell.dataset.value === undefined ? cell.textContent : cell.dataset.value;
      return value === "" || isNaN(value) ? value : Number(value);
    };
    [...body.rows]
      .sort((a, b) => {
        const [x, y] = [key(a), key(b)];
        if (x === "" || y === "") return (x === "") - (y === "");
        return (down ? 1 : -1) * (x < y ? -1 : x > y ? 1 : 0);
      })
      .forEach((row) => body.append(row));
  });
}

function listSentences(system) {
  const entry = data.systems[system];
  const list = make("ol", { class: "sentences" });
  entry.sentences.forEach((sentence, position) => {
    list.append(
      make("li", {},
        make("a", { href: `#/${system}/${position}` }, `${sentence.index}. ${sentence.source || "clip"}`),
        ` · ${seconds(sentence.source_length)} · LAAL ${sentence.LAAL === null ? "–" : seconds(sentence.LAAL)} `,
        make("div", { class: "soft" }, sentence.prediction || "(nothing was said)")),
    );
  });
  page.replaceChildren(
    make("nav", {}, make("a", { href: "#" }, "← all systems")),
    make("h1", {}, entry.name), make("p", { class: "soft" }, `${entry.sentences.length} clips`), list);
}

// A word as long as there is room for it; the whole of it is in the title of its dot.
const ruler = document.createElement("canvas").getContext("2d");
function fitted(word, room) {
  ruler.font = "12px system-ui, sans-serif";
  const width = (text) => ruler.measureText(text).width;
  if (width(word) <= room) return word;
  let letters = [...word];
  while (letters.length > 1 && width(letters.join("") + "…") > room) letters.pop();
  return letters.join("") + "…";
}

// Words against time: a line for each word, the dashed line an ideal interpreter. Drawn as wide as
// the page is, so that letters keep their size; words stand left, where there is always room.
function timeline(sentence, width) {
  const words = sentence.words;
  const units = words.reduce((sum, word) => sum + word[3], 0);
  const [height, right, bottom] = [Math.min(120 + 14 * words.length, 680), 20, 28];
  const named = words.length <= 40 ? words.map((word) => fitted(word[0], 0.45 * width)) : [];
  const left = 20 + Math.max(0, ...named.map((name) => ruler.measureText(name).width));
  const end = Math.max(sentence.source_length, ...words.map((w) => Math.max(w[1], w[2])), 1);
  const x = (ms) => left + ((width - left - right) * ms) / end;
  const y = (count) => height - bottom - ((height - bottom - 14) * count) / Math.max(units, 1);
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const draw = (tag, attributes, title) => {
    const node = document.createElementNS(SVG, tag);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (title) node.append(Object.assign(document.createElementNS(SVG, "title"), { textContent: title }));
    svg.append(node);
    return node;
  };
  draw("rect", { x: x(0), y: y(0), width: x(sentence.source_length) - x(0), height: 5, fill: "var(--line)" },
    `the speaker, ${seconds(sentence.source_length)}`);
  draw("line", { x1: x(0), y1: y(0), x2: x(sentence.source_length), y2: y(units),
    stroke: "var(--soft)", "stroke-dasharray": "4 4" });
  const steps = [500, 1000, 2000, 5000, 10000, 30000, 60000, 300000, 600000];
  const step = steps.find((ms) => (end / ms) * 56 <= width - left) || steps.at(-1);
  for (let ms = 0; ms <= end; ms += step) {
    draw("text", { x: x(ms), y: height - 8, "text-anchor": "middle" }).textContent = (ms / 1000) + " s";
  }
  let count = 0;
  for (const [word, delay, shown, own] of words) {
    const line = y((count += own));
    draw("line", { x1: x(delay), y1: line, x2: x(shown), y2: line, stroke: "var(--warm)" });
    draw("circle", { cx: x(delay), cy: line, r: 3.5, fill: "var(--accent)" },
      `${word}: heard ${seconds(delay)}, shown at ${seconds(shown)}`);
    if (named.length) draw("text", { x: left - 12, y: line + 4, "text-anchor": "end" }).textContent = named.shift();
  }
  return svg;
}

function saidWords(sentence, unit) {
  const said = make("p", { class: "said", dir: "auto" });
  const units = sentence.words.reduce((sum, word) => sum + word[3], 0);
  const pace = sentence.source_length / Math.max(units, 1);
  let count = 0;
  for (const [word, delay, shown, own] of sentence.words) {
    const heat = Math.min(Math.max((delay - count * pace) / 5000, 0), 1);
    count += own;
    const span = make("span", { title: `after ${seconds(delay)}`,
      style: `background: color-mix(in srgb, var(--warm) ${Math.round(heat * 45)}%, transparent)` }, word);
    span.dataset.shown = shown;
    said.append(span, unit === "word" ? " " : "");
  }
  return said;
}

// The speaker's sound; while it plays, words appear as a listener saw them.
function player(sound, said) {
  const audio = make("audio", { controls: "", preload: "metadata", src: sound });
  const follow = () => {
    said.classList.toggle("playing", !audio.paused);
    for (const span of said.children) span.classList.toggle("due", span.dataset.shown <= audio.currentTime * 1000);
  };
  for (const event of ["play", "pause", "ended", "timeupdate", "seeked"]) audio.addEventListener(event, follow);
  return audio;
}

function showSentence(system, position) {
  const entry = data.systems[system];
  const sentence = entry.sentences[position];
  const spoken = data.spoken[sentence.index] || { text: "", sound: "" };
  const said = saidWords(sentence, entry.unit);
  const facts = make("dl");
  for (const name of ["AL", "LAAL", "LAAL_CA", "DAL"]) {
    const value = sentence[name];
    facts.append(make("dt", {}, name), make("dd", {}, value === null || value === undefined ? "undefined" : seconds(value)));
  }
  const others = make("ul", { class: "others" });
  data.systems.forEach((other, number) => {
    const same = other.sentences.findIndex((s) => s.index === sentence.index);
    if (number !== system && same >= 0) {
      others.append(make("li", {}, make("a", { href: `#/${number}/${same}` }, other.name), ": ", other.sentences[same].prediction));
    }
  });
  const figure = make("figure", {}, make("figcaption", {},
    "Blue: how much had been heard when a word was said. Orange: the work until it was shown. Dashed: an ideal interpreter."));
  page.replaceChildren(
    make("nav", {}, make("a", { href: "#" }, "← all systems"), make("a", { href: `#/${system}` }, entry.name),
      ...(position > 0 ? [make("a", { href: `#/${system}/${position - 1}` }, "previous")] : []),
      ...(position + 1 < entry.sentences.length ? [make("a", { href: `#/${system}/${position + 1}` }, "next")] : [])),
    make("h1", {}, `${sentence.index}. ${sentence.source}`),
    make("h2", {}, "Spoken"), make("p", { dir: "auto" }, spoken.text || "The corpus has no transcript in this language."),
    spoken.sound ? player(spoken.sound, said) : make("p", { class: "soft" }, "The sound is not in this report."),
    make("h2", {}, "Said (darker: later behind the speaker)"), said,
    make("h2", {}, sentence.references.length > 1 ? "References" : "Reference"),
    ...(sentence.references.length ? sentence.references : ["none"]).map((text) => make("p", { dir: "auto" }, text)),
    make("h2", {}, "When"), figure, facts,
    ...(others.children.length ? [make("h2", {}, "Other systems"), others] : []));
  const drawing = () => {
    const room = figure.clientWidth - 2 * parseFloat(getComputedStyle(figure).paddingLeft);
    figure.querySelector("svg")?.remove();
    figure.append(timeline(sentence, Math.max(280, room)));
  };
  redraw = drawing;
  drawing();
}

function route() {
  const [, system, position] = location.hash.split("/");
  const home = system === undefined || data.systems[system] === undefined;
  overview.hidden = !home;
  page.hidden = home;
  redraw = () => {};
  if (home) return;
  if (position === undefined) listSentences(Number(system));
  else showSentence(Number(system), Number(position));
  window.scrollTo(0, 0);
}
window.addEventListener("hashchange", route);
window.addEventListener("resize", () => page.hidden || redraw());
route();
