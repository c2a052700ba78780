// Reads final words to those who listen to the page with a screen reader: whole phrases, politely.
import { endsSentence } from "./sentences.js";

const PATIENCE = 1500; // ms that words wait for the end of their sentence
const KEPT = 6;

export class Announcer {
  waiting = "";
  timer = 0;

  constructor(region) {
    this.region = region;
  }

  say(text) {
    this.waiting += text;
    clearTimeout(this.timer);
    if (endsSentence(text)) this.flush();
    else this.timer = setTimeout(() => this.flush(), PATIENCE);
  }

  language(code, direction) {
    this.region.lang = code ?? "";
    this.region.dir = direction;
  }

  flush() {
    const line = document.createElement("p");
    line.textContent = this.waiting.trim();
    this.waiting = "";
    if (!line.textContent) return;
    this.region.append(line);
    while (this.region.children.length > KEPT) this.region.firstChild.remove();
  }
}
