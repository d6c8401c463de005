<?php
// SimpleSAMLphp as a provider on loopback. The folder of this file is a copy for one test.
$folder = dirname(__DIR__) . '/';
$config = [
    'baseurlpath' => getenv('BASE_URL'),
    'certdir' => $folder . 'cert/',
    'loggingdir' => $folder . 'log/',
    'datadir' => $folder . 'data/',
    'tempdir' => $folder . 'tmp/',
    'metadatadir' => $folder . 'metadata/',
    'metadata.sources' => [['type' => 'flatfile']],
    'technicalcontact_email' => 'nobody@example.com',
    'secretsalt' => 'a test',
    'auth.adminpassword' => 'unused',
    'timezone' => 'UTC',
    'logging.handler' => 'file',
    'enable.saml20-idp' => true,
    'module.enable' => ['exampleauth' => true, 'core' => true, 'saml' => true],
    'session.cookie.secure' => false,
    'store.type' => 'phpsession',
    'session.phpsession.savepath' => $folder . 'tmp',
];
