<?php
$metadata[getenv('SERVICE')] = ['AssertionConsumerService' => getenv('SERVICE_ADDRESS')];
