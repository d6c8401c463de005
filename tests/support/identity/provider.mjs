// A real OpenID provider (npm oidc-provider) on loopback. People sign in with any password; their
// groups are in a file that the tests change. It prints its issuer when it listens. MCP clients
// register themselves (RFC 7591) and get JWTs (RFC 9068) for the resource that they name (RFC 8707).
import { readFileSync } from "node:fs";
import { Provider } from "oidc-provider";

const { PORT, PEOPLE, CLIENT_ID, CLIENT_SECRET, REDIRECT_URI, KEY_ID } = process.env;
const issuer = `http://127.0.0.1:${PORT}`;
const people = () => JSON.parse(readFileSync(PEOPLE, "utf8"));
const { privateKey } = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign", "verify"]);
const key = await crypto.subtle.exportKey("jwk", privateKey);
const SCOPES = "read payloads";

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: CLIENT_ID,
      client_secret: CLIENT_SECRET,
      redirect_uris: [REDIRECT_URI],
      id_token_signed_response_alg: "ES256",
    },
  ],
  clientDefaults: { id_token_signed_response_alg: "ES256" },
  jwks: { keys: [{ ...key, kid: KEY_ID, use: "sig", alg: "ES256", key_ops: undefined, ext: undefined }] },
  cookies: { keys: ["a test"] },
  scopes: ["openid", "offline_access", ...SCOPES.split(" ")],
  claims: { openid: ["sub"], profile: ["preferred_username", "groups"], email: ["email"] },
  pkce: { required: () => true },
  features: {
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_, resource) => ({
        scope: SCOPES,
        audience: resource,
        accessTokenTTL: 300,
        accessTokenFormat: "jwt",
        jwt: { sign: { alg: "ES256" } },
      }),
      useGrantedResource: () => true,
    },
  },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, preferred_username: `${id}@example.com`, groups: people()[id] ?? [] }),
  }),
  // Nobody is asked for consent.
  loadExistingGrant: async (ctx) => {
    const grant = new ctx.oidc.provider.Grant({
      clientId: ctx.oidc.client.clientId,
      accountId: ctx.oidc.session.accountId,
    });
    grant.addOIDCScope(`openid profile email offline_access ${SCOPES}`);
    for (const resource of [ctx.oidc.params.resource ?? []].flat()) grant.addResourceScope(resource, SCOPES);
    await grant.save();
    return grant;
  },
});
provider.listen(Number(PORT), "127.0.0.1", () => console.log(issuer));
