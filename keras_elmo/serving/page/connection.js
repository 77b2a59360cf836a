/** Connection: notices that the server has gone, asks again with growing pauses, and says when it is back. */

import { Refused, Unreachable } from "./api.js";

const PAUSES = [1000, 2000, 4000, 8000];
const HEARTBEAT = 4000;

export class Connection {
  /** `look` asks the server for anything and throws if it does not answer; `on` has the listeners `lost` and `back`. */
  constructor(look, on) {
    this.look = look;
    this.on = on;
    this.isLost = false;
    this.failures = 0;
    this.timer = null;
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.check();
    });
  }

  start() {
    this.#after(HEARTBEAT);
  }

  /** Somebody has asked and got no answer. */
  lose() {
    if (this.isLost) return;
    this.isLost = true;
    this.failures = 0;
    this.on.lost();
    this.#after(PAUSES[0]);
  }

  /** Looks now, as it otherwise does after a while. */
  async check() {
    clearTimeout(this.timer);
    try {
      await this.look();
    } catch (error) {
      if (this.isLost) this.#after(PAUSES[Math.min(++this.failures, PAUSES.length - 1)]);
      this.lose();
      if (error instanceof Unreachable || error instanceof Refused) return;
      throw error;
    }
    if (this.isLost) {
      this.isLost = false;
      this.on.back();
    }
    this.#after(HEARTBEAT);
  }

  #after(pause) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => (document.hidden ? this.#after(pause) : this.check()), pause);
  }
}
