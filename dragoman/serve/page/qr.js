// QR codes (ISO/IEC 18004), as much as a link needs: bytes, error correction M, versions 1 to 10.
const EC_PER_BLOCK = [10, 16, 26, 18, 24, 16, 18, 22, 22, 26];
const BLOCKS = [1, 1, 1, 2, 2, 4, 4, 4, 5, 5];
const ALIGNMENT = [[], [6, 18], [6, 22], [6, 26], [6, 30], [6, 34],
  [6, 22, 38], [6, 24, 42], [6, 26, 46], [6, 28, 50]];
const MASKS = [
  (x, y) => (x + y) % 2 === 0,
  (x, y) => y % 2 === 0,
  (x, y) => x % 3 === 0,
  (x, y) => (x + y) % 3 === 0,
  (x, y) => (Math.floor(y / 2) + Math.floor(x / 3)) % 2 === 0,
  (x, y) => ((x * y) % 2) + ((x * y) % 3) === 0,
  (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2 === 0,
  (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2 === 0,
];

// Rows of booleans, true where it is dark; without the quiet border.
export function qr(text) {
  const bytes = new TextEncoder().encode(text);
  const version = smallest(bytes.length);
  const bits = placed(interleaved(filled(bytes, version), version), version);
  return MASKS.map((_, mask) => finished(bits, version, mask))
    .reduce((best, one) => (penalty(one) < penalty(best) ? one : best));
}

// The same as a picture that scales.
export function qrPicture(text, label) {
  const rows = qr(text);
  const size = rows.length + 8; // four modules of quiet on each side
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", `0 0 ${size} ${size}`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", label);
  svg.setAttribute("shape-rendering", "crispEdges");
  svg.append(shape("#fff", `M0 0h${size}v${size}H0z`), shape("#000", rows.flatMap((row, y) => (
    row.map((dark, x) => (dark ? `M${x + 4} ${y + 4}h1v1h-1z` : "")))).join("")));
  return svg;
}

function shape(fill, path) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", "path");
  element.setAttribute("fill", fill);
  element.setAttribute("d", path);
  return element;
}

const side = (version) => 4 * version + 17;

// Codewords of a version: all modules but those of the patterns.
function codewords(version) {
  const alignments = ALIGNMENT[version - 1].length;
  let modules = (16 * version + 128) * version + 64;
  if (alignments) modules -= (25 * alignments - 10) * alignments - 55;
  return Math.floor((version >= 7 ? modules - 36 : modules) / 8);
}

function dataCodewords(version) {
  return codewords(version) - EC_PER_BLOCK[version - 1] * BLOCKS[version - 1];
}

const lengthBits = (version) => (version < 10 ? 8 : 16);

function smallest(length) {
  for (let version = 1; version <= 10; version++) {
    if (4 + lengthBits(version) + 8 * length <= 8 * dataCodewords(version)) return version;
  }
  throw new Error("This link is too long for a QR code.");
}

// Mode, length, bytes, and padding up to what the version holds.
function filled(bytes, version) {
  const bits = [];
  const put = (value, count) => {
    for (let i = count - 1; i >= 0; i--) bits.push((value >> i) & 1);
  };
  put(4, 4);
  put(bytes.length, lengthBits(version));
  bytes.forEach((byte) => put(byte, 8));
  const room = 8 * dataCodewords(version);
  put(0, Math.min(4, room - bits.length));
  put(0, (8 - (bits.length % 8)) % 8);
  for (let pad = 0xec; bits.length < room; pad ^= 0xec ^ 0x11) put(pad, 8);
  const words = [];
  for (let i = 0; i < bits.length; i += 8) words.push(parseInt(bits.slice(i, i + 8).join(""), 2));
  return words;
}

// Arithmetic of GF(256) with the polynomial 0x11d.
function times(a, b) {
  let product = 0;
  for (let i = 7; i >= 0; i--) {
    product = (product << 1) ^ ((product >> 7) * 0x11d);
    product ^= ((b >> i) & 1) * a;
  }
  return product;
}

function generator(degree) {
  let polynomial = [1];
  let root = 1;
  for (let i = 0; i < degree; i++) {
    const next = [...polynomial, 0];
    polynomial.forEach((value, at) => { next[at + 1] ^= times(value, root); });
    polynomial = next;
    root = times(root, 2);
  }
  return polynomial.slice(1);
}

function remainder(data, divisor) {
  const rest = divisor.map(() => 0);
  for (const byte of data) {
    const factor = byte ^ rest.shift();
    rest.push(0);
    divisor.forEach((value, i) => { rest[i] ^= times(value, factor); });
  }
  return rest;
}

// Blocks with their error correction, woven into one another.
function interleaved(data, version) {
  const count = BLOCKS[version - 1];
  const short = Math.floor(data.length / count);
  const longOnes = data.length % count;
  const divisor = generator(EC_PER_BLOCK[version - 1]);
  const blocks = [];
  for (let i = 0, at = 0; i < count; i++) {
    const length = short + (i >= count - longOnes ? 1 : 0);
    blocks.push(data.slice(at, at + length));
    at += length;
  }
  const corrections = blocks.map((block) => remainder(block, divisor));
  return [...woven(blocks), ...woven(corrections)];
}

function woven(blocks) {
  const words = [];
  for (let i = 0; i < Math.max(...blocks.map((block) => block.length)); i++) {
    blocks.forEach((block) => { if (i < block.length) words.push(block[i]); });
  }
  return words;
}

// The fixed patterns: true, false, or undefined where data belongs.
function patterns(version) {
  const n = side(version);
  const rows = Array.from({ length: n }, () => Array(n));
  const set = (x, y, dark) => { if (rows[y] && x >= 0 && x < n) rows[y][x] = dark; };
  for (let i = 0; i < n; i++) {
    set(6, i, i % 2 === 0);
    set(i, 6, i % 2 === 0);
  }
  for (const [cx, cy] of [[3, 3], [n - 4, 3], [3, n - 4]]) {
    for (let dy = -4; dy <= 4; dy++) {
      for (let dx = -4; dx <= 4; dx++) {
        const ring = Math.max(Math.abs(dx), Math.abs(dy));
        set(cx + dx, cy + dy, ring !== 2 && ring !== 4);
      }
    }
  }
  const centres = ALIGNMENT[version - 1];
  for (const cx of centres) {
    for (const cy of centres) {
      const corner = [6, n - 7];
      if (corner.includes(cx) && corner.includes(cy) && !(cx === n - 7 && cy === n - 7)) continue;
      for (let dy = -2; dy <= 2; dy++) {
        for (let dx = -2; dx <= 2; dx++) set(cx + dx, cy + dy, Math.max(Math.abs(dx), Math.abs(dy)) !== 1);
      }
    }
  }
  setFormat(rows, 0); // its place; what stands there depends on the mask
  if (version >= 7) setVersion(rows, version);
  return rows;
}

function setFormat(rows, mask) {
  const n = rows.length;
  let rest = mask; // error correction M is 00
  for (let i = 0; i < 10; i++) rest = (rest << 1) ^ ((rest >> 9) * 0x537);
  const bits = ((mask << 10) | rest) ^ 0x5412;
  const bit = (i) => ((bits >> i) & 1) === 1;
  for (let i = 0; i <= 5; i++) rows[i][8] = bit(i);
  rows[7][8] = bit(6);
  rows[8][8] = bit(7);
  rows[8][7] = bit(8);
  for (let i = 9; i < 15; i++) rows[8][14 - i] = bit(i);
  for (let i = 0; i < 8; i++) rows[8][n - 1 - i] = bit(i);
  for (let i = 8; i < 15; i++) rows[n - 15 + i][8] = bit(i);
  rows[n - 8][8] = true;
}

function setVersion(rows, version) {
  let rest = version;
  for (let i = 0; i < 12; i++) rest = (rest << 1) ^ ((rest >> 11) * 0x1f25);
  const bits = (version << 12) | rest;
  for (let i = 0; i < 18; i++) {
    const far = rows.length - 11 + (i % 3);
    const near = Math.floor(i / 3);
    rows[near][far] = rows[far][near] = ((bits >> i) & 1) === 1;
  }
}

// Data in its place, in the zigzag from the lower right: [rows, where data is].
function placed(words, version) {
  const rows = patterns(version);
  const n = rows.length;
  const data = rows.map((row) => Array.from(row, (value) => value === undefined));
  let at = 0;
  for (let right = n - 1; right >= 1; right -= 2) {
    if (right === 6) right = 5;
    for (let step = 0; step < n; step++) {
      const upwards = ((right + 1) & 2) === 0;
      const y = upwards ? n - 1 - step : step;
      for (const x of [right, right - 1]) {
        if (!data[y][x]) continue;
        rows[y][x] = ((words[at >> 3] >> (7 - (at & 7))) & 1) === 1;
        at++;
      }
    }
  }
  return { rows, data };
}

function finished({ rows, data }, version, mask) {
  const result = rows.map((row, y) => row.map((dark, x) => (
    data[y][x] && MASKS[mask](x, y) ? !dark : dark)));
  setFormat(result, mask);
  return result;
}

// How hard a code is to read: long runs, blocks, look-alikes of the finder, too dark or too light.
function penalty(rows) {
  const columns = rows.map((_, x) => rows.map((row) => row[x]));
  const n = rows.length;
  let total = 0;
  for (const line of [...rows, ...columns]) {
    const text = line.map((dark) => (dark ? "1" : "0")).join("");
    for (const run of text.match(/0{5,}|1{5,}/g) ?? []) total += run.length - 2;
    for (let i = 0; i + 11 <= n; i++) {
      const part = text.slice(i, i + 11);
      if (part === "10111010000" || part === "00001011101") total += 40;
    }
  }
  for (let y = 0; y + 1 < n; y++) {
    for (let x = 0; x + 1 < n; x++) {
      if (rows[y][x] === rows[y][x + 1] && rows[y][x] === rows[y + 1][x] && rows[y][x] === rows[y + 1][x + 1]) total += 3;
    }
  }
  const dark = rows.flat().filter(Boolean).length;
  return total + 10 * Math.floor(Math.abs((20 * dark) / (n * n) - 10));
}
