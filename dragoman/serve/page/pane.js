// A column of text that grows. What is final is appended and never touched again; what may change
// stands after it, told apart.
import { endsSentence } from "./sentences.js";

const PARAGRAPH_MS = 2500; // a pause after a sentence that begins a new paragraph…
const LONG = 420; // …and so many characters do without a pause
const TOO_LONG = 4 * LONG; // and these without a sentence: for every word all of a paragraph is laid out
const NEAR = 48; // pixels from the end that count as the end

export class Pane {
  pinned = true; // the end is kept in sight, until the reader scrolls up
  following = false; // it is about to be
  laid = ""; // how large all was when that was done last
  last = null; // the time of the word before

  // `box` scrolls; `back` is the button that leads to the end again. `most`: paragraphs that are kept,
  // where nobody reads what is out of sight.
  constructor(box, back, most = Infinity) {
    this.box = box;
    this.back = back;
    this.most = most;
    this.space = document.createTextNode(""); // before what may change, which is underlined
    this.interim = document.createElement("span");
    this.interim.className = "interim";
    box.addEventListener("scroll", () => this.scrolled());
    back?.addEventListener("click", () => this.toEnd());
    this.watching = new ResizeObserver(() => this.follow());
    this.watching.observe(box);
    this.clear();
  }

  clear() {
    this.box.replaceChildren();
    this.space.data = this.interim.textContent = "";
    this.paragraph = null;
    this.text = null;
    this.last = null;
    this.toEnd();
  }

  // Which language, and with it which way it runs.
  language(code, direction) {
    this.box.lang = code ?? "";
    this.box.dir = direction;
  }

  append(word, atMs) {
    const ended = this.text && endsSentence(this.text.data);
    const pause = this.last !== null && atMs - this.last > PARAGRAPH_MS;
    const whole = ended && (pause || this.text.length > LONG);
    if (!this.paragraph || whole || (this.text.length > TOO_LONG && /^\s/.test(word))) this.begin();
    this.last = atMs;
    this.text.appendData(this.text.length ? word : word.trimStart());
    this.follow();
  }

  begin() {
    if (this.paragraph) this.watching.unobserve(this.paragraph);
    this.paragraph = document.createElement("p");
    this.watching.observe(this.paragraph); // its letters may grow, too
    this.text = document.createTextNode("");
    this.paragraph.append(this.text, this.space, this.interim);
    this.box.append(this.paragraph);
    while (this.box.children.length > this.most) this.box.firstChild.remove();
  }

  // A line between two talks.
  divide() {
    if (!this.paragraph) return;
    this.box.append(document.createElement("hr"));
    this.paragraph = this.text = this.last = null;
  }

  perhaps(text) {
    if (text && !this.paragraph) this.begin();
    this.interim.textContent = text.trimStart();
    this.space.data = this.text?.length ? text.slice(0, -this.interim.textContent.length) : "";
    this.follow();
  }

  // Once for all that comes at one moment, as a whole talk does to those who come late: to tell how
  // long the text is by now, a browser lays it out.
  follow() {
    if (this.following) return;
    this.following = true;
    queueMicrotask(() => {
      this.following = false;
      // What stands there before there is text is read from its beginning.
      if (this.pinned) this.box.scrollTop = this.box.firstChild ? this.box.scrollHeight : 0;
      this.laid = this.sizes();
      this.box.classList.toggle("scrolled", this.box.scrollTop > 0);
    });
  }

  toEnd() {
    this.pinned = true;
    this.follow();
    if (this.back) this.back.hidden = true;
  }

  sizes() {
    const { scrollHeight, clientHeight } = this.box;
    return `${scrollHeight} ${clientHeight}`;
  }

  scrolled() {
    // Where a phone is turned, or letters grow, the browser moves the text, and not the reader.
    if (this.pinned && this.laid !== this.sizes()) return this.follow();
    const { scrollHeight, scrollTop, clientHeight } = this.box;
    this.pinned = scrollHeight - scrollTop - clientHeight < NEAR;
    if (this.back) this.back.hidden = this.pinned;
  }
}
