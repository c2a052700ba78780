// A tab that is duplicated has all that the first one remembers: a room is held by one page at a time.
const HANDOVER = 1000; // within which a page that is loaded again has let go of its room
const ANSWER = 300; // within which a page says that a room is its own

const held = new Map(); // by room: whether this page holds it

export function isHeld(room) {
  if (!held.has(room)) held.set(room, navigator.locks ? lock(`room ${room}`) : claim(`room ${room}`));
  return held.get(room);
}

function lock(name) {
  const signal = AbortSignal.timeout(HANDOVER);
  return new Promise((resolve) => {
    const forGood = () => new Promise(() => resolve(true));
    navigator.locks.request(name, { signal }, forGood).catch(() => resolve(false));
  });
}

// A page that came without encryption is given no locks: it asks the others, and answers them.
async function claim(name) {
  if (!window.BroadcastChannel) return true;
  const line = new BroadcastChannel(name);
  const free = await new Promise((resolve) => {
    line.onmessage = ({ data }) => { if (data === "mine") resolve(false); };
    line.postMessage("whose");
    setTimeout(resolve, ANSWER, true);
  });
  line.onmessage = ({ data }) => { if (data === "whose") line.postMessage("mine"); };
  if (!free) line.close();
  return free;
}
