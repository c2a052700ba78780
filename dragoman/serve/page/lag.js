// How far the words are behind the speaker: a number, and a line of the last minutes.
const SHOWN = 60;

export class LagChart {
  values = [];

  constructor(number, line) {
    this.number = number;
    this.line = line; // a <polyline> in a box of 100 by 24
  }

  clear() {
    this.values = [];
    this.draw();
  }

  add(ms) {
    this.values.push(ms / 1000);
    if (this.values.length > SHOWN) this.values.shift();
    this.draw();
  }

  draw() {
    const { values } = this;
    const now = (Math.round(10 * values.at(-1)) / 10).toFixed(1); // never -0.0
    this.number.textContent = values.length ? `${now} s behind` : "";
    const top = Math.max(4, ...values); // so that small changes do not look large
    this.line.setAttribute("points", values.map((value, i) => {
      const x = (100 * (i + SHOWN - values.length)) / (SHOWN - 1);
      return `${x.toFixed(1)},${(23 - (22 * value) / top).toFixed(1)}`;
    }).join(" "));
  }
}
