// Answers one question a line: does this vendor's SDK accept the call, or what signature does it make?
import { createInterface } from "node:readline";

const now = { at: 0 };
Date.now = () => Math.floor(now.at * 1000);

const sdks = {
  async shopify({ secret, headers, body }) {
    await import("@shopify/shopify-api/adapters/web-api");
    const { shopifyApi, ApiVersion, LogSeverity } = await import("@shopify/shopify-api");
    const api = shopifyApi({
      apiKey: "key",
      apiSecretKey: secret,
      scopes: [],
      hostName: "hooks.example",
      apiVersion: Object.values(ApiVersion)[0],
      isEmbeddedApp: false,
      logger: { level: LogSeverity.Error, log: () => {} },
    });
    const rawRequest = new Request("https://hooks.example/", { method: "POST", headers, body });
    return (await api.webhooks.validate({ rawBody: body, rawRequest })).valid;
  },
  async github({ secret, headers, body, sign }) {
    const octokit = await import("@octokit/webhooks-methods");
    if (sign) return await octokit.sign(secret, body);
    return await octokit.verify(secret, body, new Headers(headers).get("x-hub-signature-256"));
  },
  async linear({ secret, headers, bytes }) {
    const { LinearWebhookClient } = await import("@linear/sdk/webhooks");
    const sent = new Headers(headers);
    new LinearWebhookClient(secret).parseVerifiedPayload(bytes, sent.get("linear-signature"), sent.get("linear-timestamp"));
    return true;
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const question = JSON.parse(line);
  const bytes = Buffer.from(question.body_base64, "base64");
  now.at = question.at ?? 0;
  let answer;
  try {
    answer = await sdks[question.sdk]({ ...question, bytes, body: bytes.toString("utf8") });
  } catch (error) {
    answer = question.sign ? String(error) : false;
  }
  console.log(JSON.stringify(answer));
}
