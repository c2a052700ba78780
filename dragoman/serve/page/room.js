// A room: opened by a speaker, followed by listeners.
import { address, listen, pause } from "./socket.js";

// A new room and its tokens; `token` is the server's own, if it wants one.
export async function openRoom(token) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const answer = await fetch("/v1/rooms", { method: "POST", headers });
  if (!answer.ok) throw new Error((await answer.text()).trim());
  return answer.json();
}

// The address of a page of a room. The token stands behind #, which browsers send to nobody.
export function link(page, room, token, query = "") {
  return `${location.origin}/${page}/${room}${query}#${token}`;
}

// Which room this page is for, by its own address.
export function here() {
  return { room: location.pathname.split("/").pop(), token: location.hash.slice(1) };
}

// Follows a room for as long as the page is there. `on(event)` is told the events one by one, and
// {type: "connection", state: "connecting" | "reconnecting" | "refused", message}.
export class Follower {
  next = 0;
  log = "";
  tries = 0;
  speech = null;

  constructor({ room, token }, on) {
    this.path = `/v1/rooms/${room}/listen`;
    this.token = token;
    this.on = on;
    this.on({ type: "connection", state: "connecting" });
    this.connect();
  }

  connect() {
    const socket = new WebSocket(address(this.path));
    this.socket = socket;
    socket.onopen = () => {
      const { log, next, speech } = this;
      this.send({ type: "listen", log, next, speech, access_token: this.token });
    };
    listen(socket, (event) => this.take(event));
    socket.onclose = () => this.closed();
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
    if (event.type === "room") {
      this.tries = 0;
      this.refused = "";
      if (this.log && this.log !== event.log) this.on({ type: "anew" });
      this.log = event.log;
    }
    if (event.type === "told") {
      this.next = event.next;
      event.events.forEach((one) => this.on(one));
    } else if (event.type === "error" && event.code !== "voice") {
      this.refused = event.code === "token"
        ? "This link does not open this room. Ask the speaker for the whole link."
        : event.message;
      this.final = event.code === "token";
    } else {
      this.on(event);
    }
  }

  closed() {
    const state = this.refused ? "refused" : "reconnecting";
    this.on({ type: "connection", state, message: this.refused ?? "" });
    if (!this.final) setTimeout(() => this.connect(), pause(this.tries++));
  }
}
