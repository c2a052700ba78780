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
const seconds = (ms) => (ms / 1000).toFixed(1) + " s";

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

// Words against time: each step is a word, the dashed line an ideal interpreter.
function timeline(sentence) {
  const space = "http://www.w3.org/2000/svg";
  const [width, height, left, bottom] = [860, Math.min(120 + 13 * sentence.words.length, 640), 40, 28];
  const words = sentence.words;
  const end = Math.max(sentence.source_length, ...words.map((w) => Math.max(w[1], w[2])), 1);
  const x = (ms) => left + ((width - left - 12) * ms) / end;
  const y = (count) => height - bottom - ((height - bottom - 14) * count) / Math.max(words.length, 1);
  const draw = (tag, attributes, title) => {
    const node = document.createElementNS(space, tag);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (title) {
      const label = document.createElementNS(space, "title");
      label.textContent = title;
      node.append(label);
    }
    svg.append(node);
    return node;
  };
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  draw("rect", { x: x(0), y: y(0), width: x(sentence.source_length) - x(0), height: 5, fill: "var(--line)" },
    `the speaker, ${seconds(sentence.source_length)}`);
  draw("line", { x1: x(0), y1: y(0), x2: x(sentence.source_length), y2: y(words.length),
    stroke: "var(--soft)", "stroke-dasharray": "4 4" });
  for (let ms = 0; ms <= end; ms += end > 20000 ? 5000 : end > 8000 ? 2000 : 1000) {
    draw("text", { x: x(ms), y: height - 8, "text-anchor": "middle" }).textContent = seconds(ms);
  }
  words.forEach(([word, delay, shown], i) => {
    draw("line", { x1: x(delay), y1: y(i + 1), x2: x(shown), y2: y(i + 1), stroke: "var(--warm)" });
    draw("circle", { cx: x(delay), cy: y(i + 1), r: 3.5, fill: "var(--accent)" },
      `${word}: heard ${seconds(delay)}, shown at ${seconds(shown)}`);
    if (words.length <= 40) draw("text", { x: x(shown) + 7, y: y(i + 1) + 4 }).textContent = word;
  });
  return svg;
}

function showSentence(system, position) {
  const entry = data.systems[system];
  const sentence = entry.sentences[position];
  const rate = sentence.source_length / Math.max(sentence.words.length, 1);
  const said = make("p", { class: "said" });
  sentence.words.forEach(([word, delay], i) => {
    const lag = delay - i * rate;
    const heat = Math.min(Math.max(lag / 5000, 0), 1);
    said.append(
      make("span", { title: `after ${seconds(delay)}`,
        style: `background: color-mix(in srgb, var(--warm) ${Math.round(heat * 45)}%, transparent)` }, word), " ");
  });
  const facts = make("dl");
  for (const name of ["AL", "LAAL", "LAAL_CA", "DAL"]) {
    const value = sentence[name];
    facts.append(make("dt", {}, name), make("dd", {}, value === null || value === undefined ? "undefined" : seconds(value)));
  }
  const others = make("ul");
  data.systems.forEach((other, number) => {
    const same = other.sentences.findIndex((s) => s.index === sentence.index);
    if (number !== system && same >= 0) {
      others.append(make("li", {}, make("a", { href: `#/${number}/${same}` }, other.name), ": ", other.sentences[same].prediction));
    }
  });
  const figure = make("figure", {}, make("figcaption", {},
    "Blue: how much had been heard when a word was said. Orange: the work until it was shown. Dashed: an ideal interpreter."));
  figure.append(timeline(sentence));
  page.replaceChildren(
    make("nav", {}, make("a", { href: "#" }, "← all systems"), make("a", { href: `#/${system}` }, entry.name),
      ...(position > 0 ? [make("a", { href: `#/${system}/${position - 1}` }, "previous")] : []),
      ...(position + 1 < entry.sentences.length ? [make("a", { href: `#/${system}/${position + 1}` }, "next")] : [])),
    make("h1", {}, `${sentence.index}. ${sentence.source}`), figure,
    make("h2", {}, "Said (darker: later behind the speaker)"), said,
    make("h2", {}, "Reference"), make("p", {}, sentence.reference || "none"), facts,
    make("h2", {}, "Other systems"), others);
}

function route() {
  const [, system, position] = location.hash.split("/");
  const home = system === undefined || data.systems[system] === undefined;
  overview.hidden = !home;
  page.hidden = home;
  if (home) return;
  if (position === undefined) listSentences(Number(system));
  else showSentence(Number(system), Number(position));
  window.scrollTo(0, 0);
}
window.addEventListener("hashchange", route);
route();
