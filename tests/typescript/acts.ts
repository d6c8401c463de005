// What the story of acts needs: a client with the types of the description, and the answers.
import createClient from "openapi-fetch";
import type { paths } from "./api.js";

declare const process: { env: Record<string, string | undefined> };

export const client = createClient<paths>({
  baseUrl: process.env.TOOLTRAIL_URL ?? "",
  headers: { Authorization: `Bearer ${process.env.TOOLTRAIL_API_KEY}` },
});
export const statuses: Record<string, number> = {};

type Answer<Body> = { data?: Body; error?: unknown; response: Response };

/** The body of an answer. Throws if it is a problem. */
export async function done<Body>(operation: string, request: Promise<Answer<Body>>): Promise<Body> {
  const { data, error, response } = await request;
  statuses[operation] = response.status;
  if (!response.ok) {
    throw new Error(`${operation}: ${response.status} ${JSON.stringify(error)}`);
  }
  return data as Body; // undefined where OTLP's answer is empty
}

/** Bytes or text as they are, not as JSON. */
export function asTheyAre(mediaType: string) {
  return {
    headers: { "Content-Type": mediaType },
    bodySerializer: (body: unknown): BodyInit => body as BodyInit,
  };
}
