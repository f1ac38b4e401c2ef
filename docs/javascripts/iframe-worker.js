// The site's search runs in a worker, which browsers refuse to pages that were opened as files. There,
// a hidden frame takes the worker's place.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(script) {
      super();
      this.ready = new Promise((begin) => {
        const frame = document.createElement("iframe");
        frame.hidden = true;
        frame.srcdoc = "<body></body>";
        frame.addEventListener("load", () => {
          const inside = frame.contentWindow;
          inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
          const element = inside.document.createElement("script");
          element.src = script;
          element.onload = () => begin(inside);
          inside.document.body.append(element);
        }, { once: true });
        document.body.append(frame);
      });
    }

    postMessage(data) {
      this.ready.then((inside) => inside.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
