// A room: opened by a speaker, followed by listeners.
import { tabMemory } from "./dom.js";
import { isHeld } from "./hold.js";
import { UNREACHABLE, address, at, leave, listen, pause } from "./socket.js";

const NAP = 90 * 1000;
const SILENCE = 40 * 1000; // the server tells something four times a minute: without, the line is dead

// The room of this tab and its tokens. It stays the same from talk to talk, and when the page is
// loaded again: who has its link follows them all. `token` is the server's own, if it wants one.
export async function ourRoom(token) {
  const known = await roomBefore();
  if (known) return known;
  const answer = await ask("/v1/rooms", token, "POST");
  if (!answer.ok) throw new Error((await answer.text()).trim());
  const room = await answer.json();
  tabMemory.set("room", room);
  await isHeld(room.room);
  return room;
}

// The one that was opened before, if it is still there, and of this tab.
export async function roomBefore() {
  const known = tabMemory.get("room", null);
  if (!known) return null;
  if (!await isHeld(known.room)) {
    tabMemory.set("room", null);
    return null;
  }
  return await isOurs(known) ? known : null;
}

// A server that was started anew may know nothing of a room that it has opened before.
async function isOurs(room) {
  return (await askAudience(room)).ok;
}

function askAudience({ room, speaker_token }) {
  return ask(`/v1/rooms/${room}/audience`, speaker_token);
}

// How many listen; null: nobody can tell.
export async function audience(room) {
  try {
    const answer = await askAudience(room);
    return answer.ok ? (await answer.json()).listeners : null;
  } catch {
    return null;
  }
}

// Who speaks will not come back. Asked apart from the socket, and after the page is gone: what is
// written to a socket as its page is closed may be lost.
export function leaveTalk({ room, speaker_token }, session) {
  const path = `/v1/rooms/${room}/leave?session=${session}`;
  ask(path, speaker_token, "POST", { keepalive: true }).catch(() => {});
}

// What the server answers to whoever has a token.
export async function ask(path, token, method = "GET", more = {}) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  try {
    return await fetch(at(path), { method, headers, ...more });
  } catch {
    throw new Error(UNREACHABLE);
  }
}

// The address of a page of a room. The token stands behind #, which browsers send to nobody.
export function link(page, room, token, query = "") {
  return at(`/${page}/${room}${query}#${token}`);
}

// By which another device speaks in the room, should this one have to go.
export function speakerLink({ room, speaker_token, listener_token }) {
  return at(`/#${room}.${speaker_token}.${listener_token}`);
}

// The room of such a link is that of this tab from now on; nobody reads it in the address then.
export function takeSpeakerLink() {
  const found = /^#([a-z0-9]+)\.([\w-]+)\.([\w-]+)$/.exec(location.hash);
  if (!found) return;
  const [, room, speaker_token, listener_token] = found;
  tabMemory.set("room", { room, speaker_token, listener_token });
  history.replaceState(null, "", location.pathname + location.search);
}

// Which room this page is for, by its own address; to a link that lost the name no room answers, either.
export function here() {
  return { room: location.pathname.split("/").pop() || "none", token: location.hash.slice(1) };
}

// Follows a room for as long as the page is there. `on(event)` is told the events one by one, and
// {type: "connection", state: "connecting" | "reconnecting" | "refused", message}, {type: "gap", of}:
// before the next `said` or `transcript` there were others, which nobody here knows.
export class Follower {
  next = 0;
  log = "";
  void = false;
  kept = { said: [], transcript: [] }; // of the talk that is told
  lost = this.kept; // of a log that is void
  tries = 0;
  told = 0; // when the server last said something, or was asked to
  trying = false; // a socket is there, or on its way
  looked = Date.now(); // after the line, which happens every second, or every minute out of sight
  speech = null;

  constructor({ room, token }, on) {
    this.path = `/v1/rooms/${room}/listen`;
    this.token = token;
    this.on = on;
    this.on({ type: "connection", state: "connecting" });
    this.connect();
    setInterval(() => this.watch(), 1000);
  }

  connect() {
    const socket = new WebSocket(address(this.path));
    this.socket = socket;
    this.trying = true;
    this.told = performance.now();
    socket.onopen = () => {
      const { log, next, speech } = this;
      this.send({ type: "listen", log, next, speech, access_token: this.token });
    };
    listen(socket, (event) => this.take(event));
    socket.onclose = () => this.closed();
  }

  // A phone that slept has lost its line, and its own clock does not count the time; the other one does.
  watch() {
    const slept = Date.now() - this.looked > NAP;
    this.looked = Date.now();
    if (!this.trying || (!slept && performance.now() - this.told < SILENCE)) return;
    leave(this.socket);
    this.closed();
  }

  // The interpreter's voice, in an encoding; null: no more of it.
  speak(speech) {
    this.speech = speech;
    if (this.socket.readyState === WebSocket.OPEN) this.send({ type: "speak", speech });
  }

  send(message) {
    this.socket.send(JSON.stringify(message));
  }

  take(event) {
    this.told = performance.now();
    if (event.type === "room") {
      this.tries = 0;
      this.refused = "";
      this.know(event.log);
    }
    if (event.type === "told") {
      if (this.void) this.anew();
      this.next = event.next;
      event.events.forEach((one) => this.tell(one));
    } else if (event.type === "error" && event.code !== "voice") {
      this.refused = event.code === "token"
        ? "This link does not open this room. Ask the speaker for the whole link."
        : event.message;
      this.final = event.code === "token";
    } else {
      this.on(event);
    }
  }

  // Another log: what was told is void, and is shown until there is something else to show.
  know(log) {
    if (log === this.log) return;
    this.void ||= this.log !== "";
    this.log = log;
    this.next = 0;
  }

  anew() {
    this.void = false;
    this.lost = this.kept;
    this.kept = { said: [], transcript: [] };
    this.on({ type: "anew" });
  }

  // What is final. A process that goes on with a talk may know no more than the end of what was said
  // before: its beginning is told from what is kept here.
  tell(event) {
    if (event.type === "talk") this.kept = { said: [], transcript: [] };
    const kept = this.kept[event.type];
    const first = kept?.length === 0 ? before(this.lost[event.type], event) : [];
    if (kept?.length === 0 && !first.length && numbered(event) > 1) this.on({ type: "gap", of: event.type });
    for (const one of [...first, event]) {
      kept?.push(one);
      this.on(one);
    }
  }

  closed() {
    this.trying = false;
    const state = this.refused ? "refused" : "reconnecting";
    this.on({ type: "connection", state, message: this.refused ?? "" });
    if (!this.final) setTimeout(() => this.connect(), pause(this.tries++));
  }
}

const numbered = (event) => event.word ?? event.number;

// The events before one that is among them; none, if it is not, and belongs to another talk.
function before(events, event) {
  const at = events.findIndex((one) => numbered(one) === numbered(event));
  const known = events[at];
  const same = known?.text === event.text && known?.source_ms === event.source_ms;
  return same ? events.slice(0, at) : [];
}
