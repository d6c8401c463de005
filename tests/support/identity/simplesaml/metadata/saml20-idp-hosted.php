<?php
$persistent = 'urn:oasis:names:tc:SAML:2.0:nameid-format:persistent';
$metadata['__DYNAMIC:1__'] = [
    'host' => '__DEFAULT__',
    'privatekey' => 'key.pem',
    'certificate' => 'certificate.pem',
    'auth' => 'people',
    'saml20.sign.assertion' => true,
    'NameIDFormat' => $persistent,
    'authproc' => [
        3 => ['class' => 'saml:AttributeNameID', 'attribute' => 'uid', 'Format' => $persistent],
    ],
];
