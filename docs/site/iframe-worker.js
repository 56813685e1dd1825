// Browsers start no workers for pages on a disk. There, the search of the site runs in a hidden frame.
if (location.protocol === "file:") {
  // The search looks for this name, and then loads its parts relative to its own script.
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.document.open();
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = (...urls) =>
        urls.reduce((before, one) => before.then(() => this.load(one)), Promise.resolve());
      inside.document.write("<!doctype html><body>");
      inside.document.close();
      this.ready = this.load(url);
    }

    load(url) {
      return new Promise((done) => {
        const script = this.frame.contentDocument.createElement("script");
        script.src = url;
        script.addEventListener("load", done);
        script.addEventListener("error", done);
        this.frame.contentDocument.body.append(script);
      });
    }

    postMessage(data) {
      const event = () => new this.frame.contentWindow.MessageEvent("message", { data });
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(event()));
    }

    terminate() {
      this.frame.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
