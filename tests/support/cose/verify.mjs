// What two COSE libraries that nobody here wrote make of a statement and its receipts, as JSON.
//
//     node verify.mjs STATEMENT KEYS
//
// @transmute/cose finds the receipts and computes the root of each, but verifies ECDSA only. So
// cose-kit verifies the signatures, that of a receipt over the root that it is given.
import { readFileSync } from 'node:fs'
import cose from '@transmute/cose'
import { coseVerify, Sign1 } from 'cose-kit'
import { importJWK } from 'jose'

const [statement, keys] = process.argv.slice(2).map((path) => readFileSync(path))
const known = new Map(JSON.parse(keys).keys.map((key) => [key.kid, key]))
const keyOf = (headers) => {
  const kid = cose.cbor.decodeFirstSync(headers).get(cose.Protected.Kid)
  return known.get(new TextDecoder().decode(kid))
}
const verifier = {
  verify: async ({ coseSign1, payload }) => {
    const [headers, unprotected, , signature] = cose.cbor.decodeFirstSync(coseSign1).value
    const key = keyOf(headers)
    const whole = new Sign1(headers, unprotected, new Uint8Array(payload), signature)
    const isValid = await whole.verify(await importJWK(key))
    return { root: Buffer.from(payload).toString('hex'), signs: key.signs, isValid }
  }
}

const { tag, value } = cose.cbor.decodeFirstSync(statement)
const key = keyOf(value[0])
const entry = await cose.receipt.leaf(new Uint8Array(value[2]))
const receipts = []
for (const receipt of await cose.receipt.get(statement)) {
  receipts.push(await cose.receipt.inclusion.verify({ entry, receipt, verifier }))
}
const { isValid } = await coseVerify(statement, await importJWK(key))
console.log(JSON.stringify({ tag, isValid, signs: key.signs, receipts }))
