// How far the words are behind the speaker: a number, and a line of the last minutes.
const SHOWN = 60;

export class LagChart {
  values = [];
  past = false; // nothing newer is told: it is how it was

  constructor(box, number, line) {
    this.box = box;
    this.number = number;
    this.line = line; // a <polyline> in a box of 100 by 24
  }

  clear() {
    this.values = [];
    this.past = false;
    this.draw();
  }

  // The line to the server is lost, or all is said: what is shown becomes older from now on.
  age() {
    this.past = true;
    this.draw();
  }

  add(ms) {
    this.values.push(ms / 1000);
    if (this.values.length > SHOWN) this.values.shift();
    this.past = false;
    this.draw();
  }

  draw() {
    const { values } = this;
    const was = this.past ? "was " : "";
    const now = (Math.round(10 * values.at(-1)) / 10).toFixed(1); // never -0.0
    this.number.textContent = values.length ? `${was}${now} s behind` : "";
    this.box.classList.toggle("past", this.past);
    const top = Math.max(4, ...values); // so that small changes do not look large
    this.line.setAttribute("points", values.map((value, i) => {
      const x = (100 * (i + SHOWN - values.length)) / (SHOWN - 1);
      return `${x.toFixed(1)},${(23 - (22 * value) / top).toFixed(1)}`;
    }).join(" "));
  }
}
